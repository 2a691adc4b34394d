"""What a system is made of, how its claims are judged, and where it is found."""
