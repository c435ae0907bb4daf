import { parseChoice, parseDuration } from '../arguments.ts'
import { defineCommand } from '../command.ts'
import { STATUS, UsageError } from '../io.ts'
import { awaitJob } from '../jobs.ts'
import { readJson } from '../json.ts'

const PRIORITIES = ['low', 'normal', 'high'] as const
const WHEN_BUSY = ['wait', 'join', 'join_waiting', 'replace'] as const

interface Enqueued {
  readonly task_id: string
  readonly task_name: string
  readonly queue_type: string
  readonly status: string
  readonly joined?: true
}

export const enqueue = defineCommand({
  args: 'TASK',
  about: 'Adds a job and writes its id.',
  notes:
    'TASK is the name of a task, or QUEUE/TASK. `curl $MILLRACE_URL/api/v1/tasks` lists the built-in ones.',
  options: {
    args: { value: 'JSON|@FILE|-', about: 'arguments of the task; - reads the standard input; default {}' },
    queue: { value: 'QUEUE', about: 'queue of the task; default system' },
    key: { value: 'KEY', about: 'your name for the jobs of this task that share a mailbox' },
    'when-busy': { value: 'MODE', about: `if the key has an unfinished job: ${WHEN_BUSY.join(', ')}` },
    delay: { value: 'TIME', about: 'earliest start, such as 30s, 10m, 2h or 1d from now' },
    priority: { value: 'LEVEL', about: PRIORITIES.join(', ') },
    after: { value: 'JOB,…', about: 'waits for these jobs' },
    wait: { about: 'show the progress, then the result (needs jobs:read); exit status 1 if the job fails' },
  },
  example: `enqueue io_simulation_task --args '{"operations":5}' --wait`,
  scopes: ['tasks:write'],
  run: async (input) => {
    const { values, api, out } = input
    const { queue, task } = parseTask(input.args[0]!, values.queue)
    const args = values.args === undefined ? {} : await readJson('--args', values.args, input.io)
    if (typeof args !== 'object' || args === null || Array.isArray(args))
      throw new UsageError('--args must be a JSON object')
    const job = await api.call<Enqueued>('POST', '/api/v1/tasks/enqueue', {
      query: { after: values.after },
      body: {
        task_name: task,
        queue_type: queue,
        args,
        key: values.key,
        when_busy: parseChoice('when-busy', values['when-busy'], WHEN_BUSY),
        priority: parseChoice('priority', values.priority, PRIORITIES),
        delay_seconds: values.delay === undefined ? undefined : parseDuration('delay', values.delay),
      },
    })
    if (values.wait) return awaitJob(input, job.task_id, task)
    if (out.isJson) out.json(job)
    else {
      out.line(job.task_id)
      out.note(`${job.joined ? 'Joined a job that is' : 'The job is'} ${job.status} on the queue ${queue}`)
    }
    return STATUS.done
  },
})

const QUALIFIED_NAME = /^(?:(?<callers>[^/]+)\/|(?<builtIn>system|load_test)\.)(?<task>.+)$/

/** Splits a name as lists of jobs show it: `QUEUE/TASK`, or `QUEUE.TASK` for a built-in task. */
function parseTask(
  name: string,
  given: string | undefined,
): { readonly queue: string; readonly task: string } {
  const { callers, builtIn, task } = QUALIFIED_NAME.exec(name)?.groups ?? {}
  const queue = callers ?? builtIn
  if (queue === undefined || task === undefined) return { queue: given ?? 'system', task: name }
  if (given !== undefined && given !== queue)
    throw new UsageError(`--queue ${given}: ${name} names the queue ${queue}`)
  return { queue, task }
}
