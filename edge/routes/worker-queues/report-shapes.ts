import { z } from 'zod'

/** The items of a report. Values that are too long or not allowed are answered one by one, see {@link findItemFlaw}. */

const MAX_DELAY_SECONDS = 86_400
const MAX_LABEL = 1000
const MAX_TEXT = 4000
const MAX_RESULT_BYTES = 2 ** 20
const MAX_EVENT_BYTES = 64 * 1024
const MAX_LOG_BYTES = 4_000

const EVENT_KIND = /^[a-z][a-z0-9_.-]{0,63}$/
const ERROR_CODE = /^[a-z][a-z0-9_.-]{0,99}$/
// The service sends `status` itself. The others are events of the connection for a browser's EventSource.
const RESERVED_KINDS: ReadonlySet<string> = new Set(['status', 'open', 'error'])

const Progress = z.strictObject({
  label: z.string().default('').describe(`At most ${MAX_LABEL} characters`),
  current: z.int().min(0).max(2_147_483_647).nullish(),
  total: z.int().min(0).max(2_147_483_647).nullish(),
})

const Event = z.strictObject({
  kind: z
    .string()
    .describe('1 to 64 lower-case letters, digits and _.-, a letter first; not status, open, error'),
  data: z.unknown().default(null).describe('At most 64 KiB'),
})

const LogLine = z.strictObject({
  level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  message: z.string().describe(`At most ${MAX_TEXT} characters`),
  data: z.record(z.string(), z.unknown()).default({}).describe(`At most ${MAX_LOG_BYTES} bytes`),
})

const Done = z.strictObject({ result: z.unknown().default(null).describe('At most 1 MiB') })

const Failed = z.strictObject({
  code: z.string().default('worker_job.failed').describe('1 to 100 lower-case letters, digits and _.-'),
  detail: z.string().describe(`At most ${MAX_TEXT} characters`),
  retry: z.boolean().default(true).describe('False if another attempt cannot help'),
  retry_after_seconds: z.number().min(0).optional().describe('At most a day'),
})

const Release = z.strictObject({ delay_seconds: z.number().min(0).default(0).describe('At most a day') })

const KINDS = ['progress', 'event', 'log', 'done', 'failed', 'release'] as const

export const Item = z
  .strictObject({
    job_id: z.uuid().toLowerCase(),
    attempt: z.int().min(1).max(2_147_483_647),
    n: z
      .int()
      .min(1)
      .max(2_147_483_647)
      .optional()
      .describe('Number of the item within its attempt, from 1 on: a repeated one is stored once'),
    progress: Progress.optional(),
    event: Event.optional(),
    log: LogLine.optional(),
    done: Done.optional(),
    failed: Failed.optional(),
    release: Release.optional(),
  })
  .refine((item) => KINDS.filter((kind) => item[kind] !== undefined).length === 1, {
    error: `must have exactly one of ${KINDS.join(', ')}`,
  })
  .meta({ id: 'WorkerReportItem' })
export type ReportItem = z.output<typeof Item>

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Returns the reason why an item is not stored; null if there is none. `result` is the JSON text of its result. */
export function findItemFlaw(
  { progress, event, log, failed, release }: ReportItem,
  result: string | undefined,
): string | null {
  const rules: readonly (readonly [isBroken: boolean, reason: string])[] = [
    [result !== undefined && Buffer.byteLength(result) > MAX_RESULT_BYTES, 'The result has more than 1 MiB'],
    [(progress?.label.length ?? 0) > MAX_LABEL, `The label has more than ${MAX_LABEL} characters`],
    [event !== undefined && bytesOf(event.data) > MAX_EVENT_BYTES, 'The event has more than 64 KiB'],
    [event !== undefined && !isEventKind(event.kind), 'The kind of the event is not allowed'],
    [(log?.message.length ?? 0) > MAX_TEXT, `The log line has more than ${MAX_TEXT} characters`],
    [
      log !== undefined && bytesOf(log.data) > MAX_LOG_BYTES,
      `The data of the log line have more than ${MAX_LOG_BYTES} bytes`,
    ],
    [(failed?.detail.length ?? 0) > MAX_TEXT, `The detail has more than ${MAX_TEXT} characters`],
    [failed !== undefined && !ERROR_CODE.test(failed.code), 'The code is not allowed'],
    [
      (failed?.retry_after_seconds ?? release?.delay_seconds ?? 0) > MAX_DELAY_SECONDS,
      'The delay exceeds a day',
    ],
  ]
  return rules.find(([isBroken]) => isBroken)?.[1] ?? null
}

const isEventKind = (kind: string): boolean => EVENT_KIND.test(kind) && !RESERVED_KINDS.has(kind)
