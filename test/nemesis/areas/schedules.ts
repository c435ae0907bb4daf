import type { MakeArea } from '../area.ts'

const MAX_SCHEDULES = 50
// Longer than any outage here. After a longer one, only the last of the missed times gets a job (`catch_up`).
const EVERY_SECONDS = 180

/** Adds schedules of an account, reads and renames them. Each of their times must have exactly one job. */
export const schedules: MakeArea = (admin, user) => {
  const { chance } = admin
  const ids: string[] = []

  const add = async (): Promise<void> => {
    const startAt = Date.now() + chance.between(1, 20) * 1000
    const timing = { every_seconds: EVERY_SECONDS, start_at: new Date(startAt).toISOString() }
    const echo = user.createWord()
    const json = {
      name: echo,
      task_name: 'noop',
      args: { echo },
      overlap: 'queue',
      catch_up: 'last',
      ...timing,
    }
    const { json: schedule } = await user.post('/api/v1/schedules', { json })
    ids.push(schedule.id)
  }

  return {
    act: async () => {
      if (ids.length === 0 || (ids.length < MAX_SCHEDULES && chance.isHit(0.3))) return add()
      const path = `/api/v1/schedules/${chance.pick(ids)}`
      if (chance.isHit(0.5)) return void (await user.ask(path))
      await user.ask(path, { method: 'PATCH', json: { name: user.createWord() } })
    },
    judge: async () => {
      const rows = await admin.world.query(
        // A request that was retried may come after the start, whose time is then over.
        `select s.id, s.last_skip_reason, round(extract(epoch from s.next_at - s.start_at) / ${EVERY_SECONDS})::int
             - ceil(greatest(extract(epoch from s.created_at - s.start_at), 0) / ${EVERY_SECONDS})::int as times,
           (select count(*)::int from job where job.name = 'system.noop' and job.payload ->> 'echo' = s.args ->> 'echo') as jobs
         from schedule s where s.id = any($1)`,
        [ids],
      )
      const found = rows.flatMap(({ id, times, jobs, last_skip_reason: skip }) =>
        times === jobs && skip === null
          ? []
          : [`schedule ${id} has ${jobs} jobs for ${times} times, skip: ${skip}`],
      )
      if (rows.length !== ids.length)
        found.push(`${rows.length} schedules exist, but ${ids.length} were acknowledged`)
      return found
    },
  }
}
