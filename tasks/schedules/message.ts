import { z } from 'zod'
import type { Queries } from '../../sql/db.ts'
import { cancelJobs, enqueueJobs, type JobSpec } from '../../sql/jobs/jobs.ts'
import { listMessages, type NextTime } from '../../sql/schedules/schedules.ts'
import { buildJobSpecs, type JobSettings, type TaskDeclaration } from '../task.ts'

/** The message that a schedule sends to itself for its next time. */
export interface Message {
  readonly schedule_id: string
  /** The time. Once it is no longer the schedule's next one, the message does nothing. */
  readonly at: string
}

/** `schedules.run` as the code declares it that adds its jobs; `run.task.ts` adds how it runs. */
export const MESSAGE_TASK: TaskDeclaration<Message, { job_id: string | null; skipped: string | null }> = {
  name: 'schedules.run',
  queue: 'schedules',
  pool: 'io',
  actor: ({ schedule_id }) => `schedule:${schedule_id}`,
  payload: z.strictObject({ schedule_id: z.string(), at: z.iso.datetime() }),
  result: z.strictObject({
    job_id: z.uuid().nullable().describe('The job of this time; null if there is none'),
    skipped: z.string().nullable().describe('The reason for which there is none'),
  }),
}

/**
 * Builds the message for the next time of a schedule. It replaces a message that still waits. No account owns it, so
 * that it counts towards no quota.
 */
export function buildMessage({ id, next_at: at }: NextTime, settings: JobSettings): JobSpec {
  const [spec] = buildJobSpecs(MESSAGE_TASK, [{ schedule_id: id, at }], { ownerId: null, settings })
  // Each run begins a trace. Otherwise, all runs of a schedule would be one.
  const { trace_parent: _, ...rest } = spec!
  return { ...rest, when_busy: 'replace', run_at: at }
}

/** Sends the messages for these times. Call it after the schedules' rows are locked. */
export async function sendMessages(
  tx: Queries,
  times: readonly NextTime[],
  settings: JobSettings,
): Promise<void> {
  if (times.length === 0) return
  const specs = times.map((time) => buildMessage(time, settings))
  await tx.any(enqueueJobs(specs, settings.quotas.waiting_jobs))
}

/** Sends the message for the next time of a locked schedule, or cancels its message if there is no next time. */
export async function replaceMessage(
  tx: Queries,
  id: string,
  nextAt: string | null,
  settings: JobSettings,
): Promise<void> {
  if (nextAt !== null) return sendMessages(tx, [{ id, next_at: nextAt }], settings)
  const waiting = await tx.any(listMessages(id))
  if (waiting.length > 0) await tx.any(cancelJobs(waiting.map((message) => message.id)))
}
