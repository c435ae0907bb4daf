import { setTimeout as delay } from 'node:timers/promises'
import { getAwakeMs } from '../../awake.ts'
import { type Receiver, startReceiver } from '../../standins/receiver.ts'
import type { MakeArea } from '../area.ts'
import { follow } from '../follow.ts'
import { judgeWorkerJobs } from '../workers/judge.ts'
import { openEdgeLink } from '../workers/link.ts'
import { QUEUE, type StepArgs, TASK, type WorkerMessage } from '../workers/messages.ts'
import { HttpWorker } from '../workers/process.ts'

const WORKERS = 3
const POLL_INTERVAL_MS = 200
const RESULT_TIMEOUT_MS = 240_000
const END_STATUSES = ['failed', 'cancelled']

/** Adds jobs of a worker queue, which HTTP workers claim and report, and follows them to their end. */
export const workers: MakeArea = (admin, user) => {
  const { chance, world } = user
  const jobs = new Map<string, StepArgs>()
  const called = new Set<string>()
  const ended = new Map<string, Set<number>>()
  const refused = new Map<string, Set<number>>()
  let receiver: Receiver | null = null
  let started: Promise<void> | null = null

  const receive = (message: WorkerMessage): void => {
    if (message.kind === 'violation') return void admin.recordViolation(message.text)
    const { kind, jobId, attempt } = message
    const attempts = kind === 'ended' ? ended : refused
    user.history.count(
      user.history.reported,
      kind === 'refused' && message.isLate ? 'late and refused' : kind,
    )
    attempts.set(jobId, (attempts.get(jobId) ?? new Set()).add(attempt))
  }

  const start = async (): Promise<void> => {
    receiver = await startReceiver()
    const path = '/api/v1/worker-queues'
    await user.post(path, { json: { name: QUEUE } })
    await user.ask(`${path}/${QUEUE}/tasks/${TASK}`, { method: 'PUT', json: DECLARATION })
    for (let n = 1; n <= WORKERS; n++) {
      const link = await openEdgeLink(() => user.pickPort())
      const env = { TOKEN: user.token, SEED: String(chance.between(1, 1e9)) }
      world.httpWorkers.push(new HttpWorker(`HTTP worker ${n}`, link, env, receive))
    }
  }

  const add = async (): Promise<string[]> => {
    const args: StepArgs = {
      word: user.createWord(),
      steps: chance.between(0, 8),
      ms: chance.between(1, 200),
      first: chance.pick(['done', 'done', 'done', 'failed', 'release']),
    }
    const json = {
      ...{ task_name: TASK, queue_type: QUEUE, args, count: chance.isHit(0.3) ? chance.between(2, 10) : 1 },
      ...(chance.isHit(0.2) ? { key: `key ${chance.between(1, 3)}`, limit: chance.between(1, 3) } : {}),
      ...(chance.isHit(0.2) ? { delay_seconds: chance.between(1, 3) } : {}),
      ...(chance.isHit(0.2) ? { priority: 'low' } : {}),
    }
    const callsBack = chance.isHit(0.3)
    const query = callsBack ? `?callback_url=${encodeURIComponent(receiver!.url)}` : ''
    const { json: made } = await user.post(`/api/v1/tasks/enqueue${query}`, { json })
    const ids: string[] = made.task_ids ?? [made.task_id]
    for (const id of ids) jobs.set(id, args)
    if (callsBack) for (const id of ids) called.add(id)
    return ids
  }

  const poll = async (id: string): Promise<void> => {
    const end = getAwakeMs() + RESULT_TIMEOUT_MS
    for (;;) {
      const { json } = await user.ask(`/api/v1/jobs/${id}`)
      if (json.status === 'done') return
      if (END_STATUSES.includes(json.status) || getAwakeMs() > end)
        throw user.recordViolation(`a job of a worker queue is ${json.status} (job ${id})`)
      await delay(POLL_INTERVAL_MS)
    }
  }

  return {
    act: async () => {
      started ??= start()
      await started
      const id = chance.pick(await add())
      if (chance.isHit(0.4)) await follow(user, id)
      else if (chance.isHit(0.3)) await poll(id)
    },
    judge: async () => {
      const found = await judgeWorkerJobs(world, { jobs, called, ended, refused })
      await receiver?.stop()
      return found
    },
  }
}

const DECLARATION = {
  args: {
    type: 'object',
    required: ['word', 'steps'],
    properties: { word: { type: 'string' }, steps: { type: 'integer' } },
  },
  result: { type: 'object', required: ['word', 'attempt'] },
  timeout_seconds: 300,
}
