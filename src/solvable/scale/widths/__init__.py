"""Width and learning rate of torch modules: roles of parameters, factors, and their check."""
