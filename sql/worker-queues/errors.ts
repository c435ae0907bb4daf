/** Errors of worker queues: part of the table in `errors.ts`. */
export const workerQueueErrors = {
  'worker_queue.missing': { detail: 'Worker queue not found' },
  'worker_queue.name_taken': { detail: 'The name is taken; names of queues are unique in the whole service' },
  'worker_queue.ending': {
    detail: 'Jobs of a deleted queue of this name are still being cancelled; try again in a minute',
    retry: 'later',
  },
  'worker_queue.pushed': {
    detail: 'The jobs of this queue are sent to its endpoint; workers cannot claim them',
  },
  'worker_queue.undeclared': {
    detail: 'The queue {queue} has no task named {name}; declare it, or open the queue for undeclared tasks',
  },
  'worker_task.missing': { detail: 'The queue has no such task' },
  'lease.missing': { detail: 'The lease has expired or was returned; its jobs run elsewhere. Claim again' },
  'worker_task.limit': { detail: 'The queue would have more than {max} tasks; remove some first' },
  'lease.limit': {
    detail: 'The queue has {max} workers; pass lease_id to go on with the same one',
    retry: 'later',
  },
  'lease.taken': { detail: 'The lease id is in use; choose another one' },
  'worker_job.failed': { detail: 'The worker reported a failure' },
  'worker_job.result_invalid': { detail: 'The result does not match the schema of the task: {reason}' },
  'worker_job.endpoint_failed': { detail: 'The endpoint failed: {reason}', retry: 'later' },
} as const
