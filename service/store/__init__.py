"""Where models, collections and items are kept. `interface` says what a store does, `sqlite` is the one there is."""
