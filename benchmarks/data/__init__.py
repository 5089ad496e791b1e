"""Readers of published feature files that are too large, or not free, to come with this repository.

Neither data set is downloaded by anything here. With the files in place:

NUS-WIDE (https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html): `Low_Level_Features/`,
`NUS_WID_Tags/` and `Groundtruth/` unpacked in one folder. Flickr1M (http://www.cs.toronto.edu/~nitish/multimodal/):
`flickr_data.tar.gz` unpacked, which makes `image/`, `text/` and `labels.npy`. Then, the paper's protocol:

    python -m benchmarks.data evaluate nus-wide FOLDER --bits 8,16,32,64 --seeds 10
    python -m benchmarks.data evaluate flickr1m FOLDER --bits 8,16,32,64 --seeds 10 --preprocess zscore,unit

and, for anything else, an `.npz` as `ccq evaluate` takes it, which trains on the whole database:

    python -m benchmarks.data save nus-wide FOLDER nus-wide.npz

What each step of the paper is in these terms is said in `nuswide` and `flickr1m`.
"""

from benchmarks.data.flickr1m import load_flickr1m, unlabelled_pairs
from benchmarks.data.nuswide import load_nus_wide
from benchmarks.data.split import save, training_sample

__all__ = ["load_flickr1m", "load_nus_wide", "save", "training_sample", "unlabelled_pairs"]
