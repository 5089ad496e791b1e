"""The experiments of the paper (Long, Cao, Wang, Yu, SIGIR 2016, section 5), on Wiki and on emoji.

    python -m benchmarks.paper map --wiki wiki.npz            # Table 2: MAP@50, ten seeds
    python -m benchmarks.paper curves --wiki wiki.npz         # Figures 3 to 5: precision-recall, precision@R
    python -m benchmarks.paper binarization --wiki wiki.npz   # Figure 6a: continuous vectors against codes
    python -m benchmarks.paper semi --wiki wiki.npz           # Figures 6b and 6c: unpaired objects beside pairs
    python -m benchmarks.paper search-time                    # Figure 6d: CCQ's scan beside Hamming scans
    python -m benchmarks.paper training                       # Figures 7a and 7b: time and memory
    python -m benchmarks.paper lambda --wiki wiki.npz         # Figures 7c and 7d: the weight of texts
    python -m benchmarks.paper figures report                 # draw what is there, write docs/paper.md

Each writes one CSV file into `--output` (`build/paper`) and goes on where it was interrupted.
"""
