/**
 * What the worst document may take of the clock, which its pages share with those of others. What is not read by then
 * waits for another extraction.
 */
export const DOCUMENT_MS = 24 * 3600_000
