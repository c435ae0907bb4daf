/** Errors of jobs, tasks, schedules, queues and workers: part of the table in `errors.ts`. */
export const jobErrors = {
  'job.missing': { detail: 'Job not found' },
  'job.not_failed': { detail: 'Only a failed job can be retried; this one is {status}' },
  'job.not_retryable': { detail: 'Jobs of this task cannot be retried; repeat the request instead' },
  'job.not_runnable': { detail: 'This version of the service cannot retry the job' },
  'job.cancelled': { detail: 'The job was cancelled' },
  'job.superseded': { detail: 'Another worker has taken over this job' },
  'job.timeout': { detail: 'The job exceeded its time limit of {seconds} s', retry: 'later' },
  'job.crashed': { detail: 'The worker thread crashed while running the job', retry: 'later' },
  'schedule.missing': { detail: 'Schedule not found' },
  'task.unknown': { detail: 'This queue has no task named {name}; it has {names}' },
  'task.unknown_queue': { detail: 'There is no queue named {name}; the queues are {names}' },
  'worker.missing': { detail: 'Worker not found' },
  'queue.missing': { detail: 'There is no queue named {name}; the queues are {names}' },
  'task.missing': { detail: 'Task not found, or its result has expired' },
  'task.chosen_failure': { detail: 'The task failed, as requested' },
  'task.chosen_passing_failure': { detail: 'The task failed temporarily, as requested', retry: 'later' },
} as const
