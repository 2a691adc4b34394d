"""What all reports share: templates, drawings, small pictures, the result directory."""
