import GRDB
public enum StorePlaceholder {}
