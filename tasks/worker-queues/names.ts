/** Names of jobs of worker queues: `QUEUE/TASK`. No built-in task has a slash in its name. */

export const formatJobName = (queue: string, task: string): string => `${queue}/${task}`

/** True if a job belongs to a worker queue. */
export const isWorkerJob = (name: string): boolean => name.includes('/')

/** Returns the queue and the task of a job of a worker queue. */
export function parseJobName(name: string): { readonly queue: string; readonly task: string } {
  const slash = name.indexOf('/')
  return { queue: name.slice(0, slash), task: name.slice(slash + 1) }
}
