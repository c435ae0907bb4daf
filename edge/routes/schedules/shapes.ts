import { z } from 'zod'
import { CATCH_UPS, OVERLAPS, SKIP_REASONS } from '../../../sql/schedules/schedules.ts'
import { parseCron } from '../../../tasks/schedules/cron.ts'
import { isTimeZone } from '../../../tasks/schedules/zone.ts'
import { Moment, Timestamp } from '../../pipeline/request/schemas.ts'
import { STATUSES } from '../jobs/shapes.ts'

/** Number of next times in the answer. */
export const SHOWN_TIMES = 5

// The id of a built-in schedule is its name. Any other text gets the same response as an unknown id.
export const ScheduleParams = z.object({ schedule_id: z.string().meta({ examples: ['retention'] }) })

const LastJob = z
  .strictObject({
    job_id: z.uuid(),
    status: z.enum(STATUSES),
    error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
    finished_at: Timestamp.nullable(),
  })
  .nullable()
  .meta({
    description:
      'The job of the last run; null before the first run, and `WORKER_KEEP_RESULT_SECONDS` after the job ended',
  })

const LastSkip = z
  .strictObject({
    at: Timestamp,
    reason: z.enum(SKIP_REASONS).meta({
      description:
        '`late`: no worker was there within five minutes; `overlap`: the last job had not ended; `account`: the account was inactive; `task`: the task did not accept the arguments; `quota`: too many jobs waited',
    }),
  })
  .nullable()
  .meta({ description: 'The last time that added no job; null if there is none' })

export const Schedule = z
  .strictObject({
    id: z.string().meta({ examples: ['retention'] }),
    owner_id: z.int().nullable().meta({ description: 'The account that owns it and its jobs' }),
    is_built_in: z.boolean(),
    name: z.string(),
    task_name: z.string(),
    queue_type: z.string(),
    args: z.record(z.string(), z.unknown()),
    cron: z.string().nullable(),
    every_seconds: z.int().nullable(),
    time_zone: z.string().meta({ examples: ['Europe/Berlin'] }),
    start_at: Timestamp.nullable(),
    end_at: Timestamp.nullable(),
    overlap: z.enum(OVERLAPS),
    catch_up: z.enum(CATCH_UPS),
    paused_at: Timestamp.nullable(),
    paused_by: z.int().nullable().meta({ description: 'Id of the account that paused it; null if none did' }),
    next_run_at: Timestamp.nullable().meta({
      description: 'Null while it is paused and after its last time',
    }),
    next_runs: z.array(Timestamp).meta({ description: `The next ${SHOWN_TIMES} times` }),
    last_run_at: Timestamp.nullable().meta({
      description: 'When it last added a job, or joined an unfinished one; null if it never did',
    }),
    last_job: LastJob,
    recent_jobs: z
      .array(z.strictObject({ job_id: z.uuid(), status: z.enum(STATUSES), created_at: Timestamp }))
      .meta({ description: 'The jobs of the last 20 runs that are still kept, oldest first' }),
    last_skip: LastSkip,
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Schedule' })
export type Schedule = z.input<typeof Schedule>

function isCron(text: string): boolean {
  try {
    parseCron(text)
    return true
  } catch {
    return false
  }
}

// Texts of later years have another form, and schedules of the past need no times before.
const BoundedMoment = Moment.refine((text) => {
  const year = new Date(text).getUTCFullYear()
  return year >= 1970 && year < 9999
}, 'must be in the years 1970 to 9998')

const Fields = {
  name: z.string().min(1).max(100),
  cron: z
    .string()
    .max(200)
    .refine(isCron, 'must be five cron fields, or @hourly, @daily, @weekly, @monthly or @yearly')
    .meta({
      description: 'Minute, hour, day of month, month and day of week',
      examples: ['30 2 * * mon-fri'],
    }),
  every_seconds: z
    .int()
    .min(60)
    .max(31_536_000)
    .meta({ description: 'Interval from `start_at` on, or from the creation, instead of `cron`' }),
  time_zone: z
    .string()
    .refine(isTimeZone, 'must be an IANA time zone such as Europe/Berlin')
    .meta({ examples: ['Europe/Berlin'] }),
  task_name: z.string().max(100).meta({ example: 'io_simulation_task' }),
  queue_type: z.string().max(100).meta({ example: 'system' }),
  args: z.record(z.string(), z.unknown()),
  start_at: BoundedMoment.meta({ description: 'First possible time' }),
  end_at: BoundedMoment.meta({ description: 'No run is at this time or later' }),
  overlap: z.enum(OVERLAPS).meta({
    description: '`skip`: a time adds no job while the previous job has not ended; `queue`: it does',
  }),
  catch_up: z.enum(CATCH_UPS).meta({
    description:
      'After an outage of the workers, `last` runs the latest missed time; `none` skips what is over five minutes late',
  }),
}

export const NewSchedule = z
  .strictObject({
    ...Fields,
    cron: Fields.cron.optional(),
    every_seconds: Fields.every_seconds.optional(),
    time_zone: Fields.time_zone.default('UTC'),
    queue_type: Fields.queue_type.default('system'),
    args: Fields.args.default({}),
    start_at: Fields.start_at.optional(),
    end_at: Fields.end_at.optional(),
    overlap: Fields.overlap.default('skip'),
    catch_up: Fields.catch_up.default('none'),
  })
  .refine(({ cron, every_seconds }) => (cron === undefined) !== (every_seconds === undefined), {
    error: 'needs either `cron` or `every_seconds`',
    path: ['cron'],
  })
  .meta({ id: 'NewSchedule' })

/** A value for either of `cron` and `every_seconds` clears the other. */
export const ScheduleChange = z
  .strictObject({
    ...Fields,
    start_at: Fields.start_at.nullable(),
    end_at: Fields.end_at.nullable(),
  })
  .partial()
  .refine(({ cron, every_seconds }) => cron === undefined || every_seconds === undefined, {
    error: 'excludes `every_seconds`',
    path: ['cron'],
  })
  .meta({ id: 'ScheduleChange' })
