/**
 * The longest time for one document, whose pages compete with those of others. Pages that are not read by then wait for
 * another extraction.
 */
export const DOCUMENT_MS = 24 * 3600_000
