"""Random hierarchy models: grammars whose strings have a label, and hierarchies of labels."""
