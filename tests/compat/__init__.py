"""What released formats left on disk stays readable."""
