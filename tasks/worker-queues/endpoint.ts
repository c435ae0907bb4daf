/** The endpoints of worker queues. */

/** Longest time for which a worker waits for the answer of an endpoint. */
export const MAX_PUSH_SECONDS = 900

/** Use under which the secret of a queue's endpoint is sealed. */
export const sealUseOf = (queue: string): string => `worker_queue:${queue}`
