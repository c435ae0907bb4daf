import { type Receiver, startReceiver } from '../../standins/receiver.ts'
import type { MakeArea } from '../area.ts'
import { follow } from '../follow.ts'

const JOB = { task_name: 'noop', queue_type: 'system' }

/** Adds graphs of jobs, some of them open, keyed or with a rate, and follows their batches to the end. */
export const batches: MakeArea = (admin, user) => {
  const { chance } = admin
  const expected = new Map<string, number>()
  let receiver: Promise<Receiver> | undefined

  const buildJobs = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      ...JOB,
      args: { echo: user.createWord() },
      ...(n > 0 && chance.isHit(0.5) ? { after: [chance.between(0, n - 1), chance.between(0, n - 1)] } : {}),
      ...(chance.isHit(0.2) ? { key: `key ${chance.between(1, 3)}`, limit: chance.between(1, 3) } : {}),
      ...(chance.isHit(0.1) ? { key: 'rated', rate: '200/1' } : {}),
      ...(chance.isHit(0.2) ? { delay_seconds: chance.between(1, 3) } : {}),
      ...(chance.isHit(0.2) ? { priority: 'low' } : {}),
    }))

  return {
    act: async () => {
      receiver ??= startReceiver()
      const { url } = await receiver
      const open = chance.isHit(0.3)
      const jobs = buildJobs(chance.between(open ? 0 : 1, 60))
      const { json } = await user.post('/api/v1/batches', { json: { jobs, open, callback_url: url } })
      let count = jobs.length
      if (open) {
        const more = buildJobs(chance.between(1, 20))
        await user.post(`/api/v1/batches/${json.batch_id}/jobs`, { json: { jobs: more } })
        count += more.length
        await user.post(`/api/v1/batches/${json.batch_id}/close`)
      }
      expected.set(json.batch_id, count)
      const end = await follow(user, json.batch_id)
      const result = end.result as { total: number; done: number }
      if (result.total !== count || result.done !== count)
        user.recordViolation(`batch ${json.batch_id} of ${count} jobs ended with ${JSON.stringify(result)}`)
    },
    judge: async () => {
      const { query } = admin.world
      const rows = await query(
        `select b.id, b.status, (select count(*)::int from job m where m.batch_id = b.id) as jobs,
           (select count(*)::int from job m where m.batch_id = b.id and m.status = 'done') as done,
           (select count(*)::int from webhook_delivery d where d.type = 'batch.done' and d.body::jsonb -> 'data' ->> 'job_id' = b.id::text) as calls,
           (select count(*)::int from job m cross join lateral unnest(m.after) a(id) join job before on before.id = a.id
             where m.batch_id = b.id and m.started_at < before.finished_at) as early
         from job b where b.name = 'jobs.batch'`,
      )
      await (await receiver)?.stop()
      const found = rows.flatMap(({ id, status, jobs, done, calls, early }) => {
        const count = expected.get(String(id))
        const isSound = status === 'done' && jobs === count && done === count && calls === 1 && early === 0
        return isSound
          ? []
          : [`batch ${id} of ${count}: ${JSON.stringify({ status, jobs, done, calls, early })}`]
      })
      if (rows.length !== expected.size)
        found.push(`${rows.length} batches exist, but ${expected.size} were acknowledged`)
      return found
    },
  }
}
