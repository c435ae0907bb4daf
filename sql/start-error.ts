/** What keeps a process from starting until somebody acts. The message is a sentence or two: what is wrong, what to do. */
export class StartError extends Error {}
