/// The words.
public enum Placeholder {}
