import type { Queries } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { fenceJob } from '../../sql/jobs/jobs.ts'
import type { TaskContext } from '../../tasks/context.ts'
import { sendMessages } from '../../tasks/schedules/message.ts'
import { runSchedule } from '../../tasks/schedules/run.task.ts'
import type { TestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'

/** Adds schedules, and runs their messages as a worker does. */

export interface ScheduleRow {
  readonly next_at: Date | null
  readonly last_job_id: string | null
  readonly last_skip_reason: string | null
  readonly last_skipped_at: Date | null
  readonly cron: string | null
  readonly [column: string]: unknown
}

export const settings = createJobSettings() as TaskContext['settings']

type Fields = Readonly<Record<string, unknown>>
/** Changes the queries of a transaction, for faults. */
type WrapQueries = (tx: Queries) => Queries

export function createScheduleHelp({ db, query }: Pick<TestDatabase, 'db' | 'query'>) {
  /** Adds a schedule that was due some seconds ago and each minute before, with its message. */
  async function add(fields: Fields = {}, dueSeconds = -1): Promise<string> {
    const row: Fields = {
      ...{
        id: uuidv7(),
        name: 'test',
        task_name: 'noop',
        queue_type: 'system',
        args: { echo: 'x' },
        cron: null,
      },
      ...{ every_seconds: 60, time_zone: 'UTC', overlap: 'skip', catch_up: 'none' },
      ...fields,
    }
    const [added] = await query(
      `insert into schedule (id, owner_id, is_built_in, name, task_name, queue_type, args, cron, every_seconds, time_zone, start_at,
         end_at, overlap, catch_up, next_at)
       select id, owner_id, coalesce(is_built_in, false), name, task_name, queue_type, args, cron, every_seconds, time_zone,
         coalesce(start_at, due - interval '1 day'), end_at, overlap, catch_up, due
       from jsonb_populate_record(null::schedule, $1::jsonb), date_trunc('milliseconds', now() + $2 * interval '1 s') due
       returning id, iso(next_at) as next_at`,
      [JSON.stringify(row), dueSeconds],
    )
    const time = added as { id: string; next_at: string }
    await db.transaction((tx) => sendMessages(tx, [time], settings))
    return time.id
  }

  const read = async (id: string): Promise<ScheduleRow> =>
    (await query('select * from schedule where id = $1', [id]))[0] as unknown as ScheduleRow
  const readAt = async (id: string): Promise<string> =>
    (await query('select iso(next_at) as at from schedule where id = $1', [id]))[0]!.at as string

  /** Times of the messages that wait. */
  const listMessageTimes = async (id: string): Promise<unknown[]> =>
    (
      await query(
        `select payload ->> 'at' as at from job where mailbox = 'schedule:' || $1::text and finished_at is null order by ordinal`,
        [id],
      )
    ).map(({ at }) => at)

  /** Ids of the jobs that schedules have added. */
  const listJobs = async (): Promise<string[]> =>
    (await query(`select id from job where name <> 'schedules.run' order by ordinal`)).map(
      ({ id }) => id as string,
    )

  /** Runs the message of a time, by default the next one. With `attempt`, only while that one is current. */
  async function run(
    id: string,
    options: { at?: string; wrap?: WrapQueries; attempt?: { id: string; attempt: number } } = {},
  ) {
    const { wrap = (tx) => tx, attempt } = options
    const at = options.at ?? (await readAt(id))
    // The message has been claimed, so that no later one replaces it.
    await query(
      `update job set attempt = 1 where mailbox = 'schedule:' || $1::text and payload ->> 'at' = $2`,
      [id, at],
    )
    const result = await runSchedule.run(
      {
        settings,
        runFenced: (work) =>
          db.transaction(async (tx) => {
            if (attempt !== undefined && (await tx.maybeOne(fenceJob(attempt.id, attempt.attempt))) === null)
              throw new Error('superseded')
            return work(wrap(tx))
          }),
      } as TaskContext,
      { schedule_id: id, at },
    )
    await query(
      `update job set status = 'done', lease_id = null, finished_at = now() where mailbox = 'schedule:' || $1::text and payload ->> 'at' = $2 and finished_at is null`,
      [id, at],
    )
    return result
  }

  return { add, read, readAt, listMessageTimes, listJobs, run }
}
