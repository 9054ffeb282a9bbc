"""What runs before a foundation is deployed."""
