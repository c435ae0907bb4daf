// Forms that add a job, or a changed copy of one.

import { openForm } from '../parts/dialog.js'
import { jobPath } from '../parts/jobs.js'
import { runnableTasks } from './known.js'
import { taskFields } from './task-fields.js'

/** Opens the form of a new job, then the page of the job. `given` has the `queue`, `task` and `args` of a copy. */
export async function openNewJob(account, given, title = 'New job') {
  const added = await openForm(title, {
    operation: 'POST /api/v1/tasks/enqueue',
    fields: ['queue_type', 'task_name', 'args'],
    more: ['delay_seconds', 'run_at', 'priority', 'key', 'limit', 'when_busy', 'count'],
    set: {
      ...(await taskFields(account, given)),
      delay_seconds: { label: 'Delay in seconds' },
      run_at: { label: 'Start at', help: 'Instead of a delay, at most 30 days ahead.' },
      key: { help: 'A name of yours for jobs that share the settings below.' },
      limit: { label: 'Most jobs of the key that run at a time' },
      when_busy: {
        label: 'If a job of the key has not ended',
        options: [
          ['wait', 'add another'],
          ['join', 'use that one'],
          ['join_waiting', 'use it if it has not started'],
          ['replace', 'replace one that has not started'],
        ],
      },
      count: { label: 'Number of jobs' },
    },
    prepare: withoutDefaults,
    submit: 'Add job',
  })
  if (added !== null) location.assign(jobPath(added.task_id))
}

/** Some settings are valid only together with others. */
function withoutDefaults({ delay_seconds, count, when_busy, burst, ...json }) {
  if (delay_seconds > 0) json.delay_seconds = delay_seconds
  if (count > 1) json.count = count
  if (json.key !== undefined && when_busy !== undefined) json.when_busy = when_busy
  return json
}

/** Returns the queue and the task of a job to which the account can add another; null if it cannot. */
export async function findRunnable({ name, queue }) {
  const found = (await runnableTasks()).find((one) => one.queue === queue && (name === `${queue}.${one.task}` || name === `${queue}/${one.task}`))
  if (found !== undefined) return { queue, task: found.task }
  // An open worker queue accepts jobs of undeclared tasks.
  return name.startsWith(`${queue}/`) ? { queue, task: name.slice(queue.length + 1) } : null
}
