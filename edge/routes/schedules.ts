import { z } from 'zod'
import { type Query, readWithin } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'
import { readJob } from '../../sql/jobs/jobs.ts'
import {
  pauseScheduleEntry,
  readSchedule,
  readSchedules,
  resumeScheduleEntry,
  type ScheduleEntry,
} from '../../sql/jobs/schedules.ts'
import { computeNextRun } from '../../tasks/cron.ts'
import { type CronEntry, runEntry, scheduleEntries } from '../../tasks/schedule.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import type { Edge } from '../pipeline/context.ts'
import { Timestamp } from '../pipeline/request/schemas.ts'
import { type Answer, answerJson, area, type Input, route, type Writes } from '../pipeline/route.ts'
import { appendAuditEvent } from '../pipeline/write/audit.ts'
import { buildJobReadParameters, Job, STATUSES } from './jobs/shapes.ts'

const Name = z.string().meta({ examples: ['retention'] })
const Params = z.object({ name: Name })

const Schedule = z
  .strictObject({
    name: Name,
    cron: z.string().meta({ description: 'Five fields, in UTC', examples: ['53 * * * *'] }),
    task: z.string().meta({ examples: ['system.retention'] }),
    queue: z.string().meta({ examples: ['system'] }),
    paused_at: Timestamp.nullable(),
    paused_by: z.int().nullable().meta({ description: 'Id of the account that paused it; null if none did' }),
    next_run_at: Timestamp.nullable().meta({ description: 'Null while it is paused' }),
    last_run_at: Timestamp.nullable().meta({
      description: 'When it last added a job, or joined an unfinished one; null if it never did',
    }),
    last_job: z
      .strictObject({
        job_id: z.uuid(),
        status: z.enum(STATUSES),
        error: z.strictObject({ code: z.string(), detail: z.string() }).nullable(),
        finished_at: Timestamp.nullable(),
      })
      .nullable()
      .meta({
        description: 'The job of the last run; null before the first run, and once the job is no longer kept',
      }),
  })
  .meta({ id: 'Schedule' })

type ScheduleInput = Input<z.output<typeof Params>, unknown, undefined, Caller> &
  Writes<z.input<typeof Schedule>>

/** Routes that list, run, pause and resume schedules. Workers run their jobs. */
export const schedules = area('schedules', '/api/v1/schedules', { auth: 'admin' }, [
  route({
    method: 'get',
    path: '',
    summary: 'List schedules by name',
    response: z.array(Schedule),
    handle: async ({ edge }) =>
      answerJson((await edge.reader.text(readSchedules, buildStateParameters(edge, scheduleEntries)))!),
  }),

  route({
    method: 'post',
    path: '/:name/run',
    summary: 'Run a schedule now',
    description:
      'Returns the job that it adds, or the unfinished job that it joins. A paused schedule also runs, and stays paused.',
    params: Params,
    response: Job,
    status: 202,
    errors: ['schedule.missing', 'job.missing'],
    sideEffect: true,
    handle: (input) => {
      const { params, caller, edge, requestId, transaction } = input
      const entry = requireEntry(params.name)
      const options = { requestId, settings: edge.settings, ignorePause: true }
      return transaction(async (tx) => {
        const id = (await runEntry(tx, entry, options))!
        await tx.run(appendAuditEvent(input, 'schedule.run', { data: { schedule: entry.identifier } }))
        tx.afterCommit(() => edge.publisher.notify(id))
        const text = await readWithin(tx, readJob, buildJobReadParameters(edge, caller, id))
        // The job that the request joined has ended and expired in the meantime.
        if (text === null) throw fail('job.missing')
        return answerJson(text, { headers: [['location', `/api/v1/jobs/${id}`]] })
      })
    },
  }),

  route({
    method: 'post',
    path: '/:name/pause',
    summary: 'Pause a schedule',
    description:
      'It adds no job until it is resumed; jobs that it has added continue. Pausing a paused schedule changes nothing.',
    params: Params,
    response: Schedule,
    errors: ['schedule.missing'],
    sideEffect: true,
    handle: (input) => {
      const entry = requireEntry(input.params.name)
      return changeSchedule(
        input,
        entry,
        pauseScheduleEntry(entry.identifier, input.caller.ownerId),
        'schedule.paused',
      )
    },
  }),

  route({
    method: 'post',
    path: '/:name/resume',
    summary: 'Resume a paused schedule',
    description: 'It runs at its next scheduled time; missed runs are not made up.',
    params: Params,
    response: Schedule,
    errors: ['schedule.missing'],
    sideEffect: true,
    handle: (input) => {
      const entry = requireEntry(input.params.name)
      return changeSchedule(input, entry, resumeScheduleEntry(entry.identifier), 'schedule.resumed')
    },
  }),
])

/** @throws fail('schedule.missing') */
function requireEntry(name: string): CronEntry {
  const entry = scheduleEntries.find(({ identifier }) => identifier === name)
  if (entry === undefined) throw fail('schedule.missing')
  return entry
}

/** Runs the statement and answers with the state of the entry. Audits the statement if it changed anything. */
async function changeSchedule(
  input: ScheduleInput,
  entry: CronEntry,
  statement: Query<unknown>,
  kind: 'schedule.paused' | 'schedule.resumed',
): Promise<Answer<z.input<typeof Schedule>>> {
  return input.transaction(async (tx) => {
    if ((await tx.run(statement)) > 0)
      await tx.run(appendAuditEvent(input, kind, { data: { schedule: entry.identifier } }))
    return answerJson((await readWithin(tx, readSchedule, buildStateParameters(input.edge, [entry])))!)
  })
}

/** Returns the parameters of `readSchedules` and `readSchedule` for these entries. */
function buildStateParameters({ healthCheck, settings }: Edge, entries: readonly CronEntry[]) {
  const now = new Date(healthCheck.now())
  const states = entries.map(
    ({ identifier, match, task }): ScheduleEntry => ({
      name: identifier,
      cron: match,
      task: task.name,
      queue: task.queue,
      next_run_at: computeNextRun(match, now).toISOString(),
    }),
  )
  return [JSON.stringify(states), settings.jobRetention] as const
}
