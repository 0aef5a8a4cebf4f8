"""Random steps on real repositories, checked against a model that takes nothing from gitcp."""
