/**
 * An error that only an operator can fix and that prevents a start. Its message states the problem and the fix in one
 * or two sentences.
 */
export class StartError extends Error {}
