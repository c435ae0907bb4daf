/**
 * An error that prevents a start until an operator acts. Its message states the problem and the fix in one or two
 * sentences.
 */
export class StartError extends Error {}
