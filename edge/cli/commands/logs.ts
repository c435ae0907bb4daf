import type { z } from 'zod'
import { isFinal, pause } from '../../client/connection.ts'
import type { JobDetails, JobEvent as JobEventSchema } from '../../routes/jobs/shapes.ts'
import { defineCommand, type Input } from '../command.ts'
import { STATUS } from '../io.ts'
import { colourOf, formatDetail, formatProgress } from '../jobs.ts'
import { type Colour, clean, formatDuration } from '../output.ts'

type JobEvent = z.output<typeof JobEventSchema>

// Log lines have no stream, and workers store them up to two seconds late.
const INTERVAL_MS = 1000
const LOG_DELAY_MS = 2000
const LEVEL_COLOURS: Readonly<Partial<Record<string, Colour>>> = {
  warn: 'yellow',
  error: 'red',
  fatal: 'red',
}

/** A line of the output. `id` recognizes it when the job is read again. */
interface Line {
  readonly id: string
  readonly at: string
  readonly kind: string
  readonly colour: Colour | null
  readonly text: string
  readonly json: object
}

export const logs = defineCommand({
  args: 'JOB',
  about: 'Shows the events of a job and the log lines of its attempts in the order of their times.',
  notes: 'Only admins see log lines of built-in tasks. Owners see those that their own workers report.',
  options: { follow: { about: 'show new lines until the job ends' } },
  example: 'logs 01a20118-fbcc-738c-80ed-00058e0e401d --follow',
  scope: 'jobs:read',
  run: async (input) => {
    const { args, values, out, io } = input
    const id = args[0]!
    if (values.follow)
      input.onInterrupt(`Stopped following. The job goes on: npx millrace logs ${id} --follow`)
    const seen = new Set<string>()
    let details = await readLines(input, id, seen)
    for (let endedAt: number | null = null; values.follow; ) {
      if (endedAt !== null && io.now() - endedAt > LOG_DELAY_MS) break
      if (isFinal(details.job.status)) endedAt ??= io.now()
      await pause(INTERVAL_MS, io.signal)
      details = await readLines(input, id, seen)
    }
    if (details.log === null && !out.isJson) out.note('Log lines of this job are for admins')
    return STATUS.done
  },
})

/** Writes the lines of a job that are not in `seen`, and adds them. */
async function readLines({ api, out }: Input, id: string, seen: Set<string>): Promise<JobDetails> {
  const path = `/api/v1/jobs/${encodeURIComponent(id)}`
  const [details, events] = await Promise.all([
    api.call<JobDetails>('GET', `${path}/details`),
    api.call<JobEvent[]>('GET', `${path}/history`),
  ])
  const isFirst = seen.size === 0
  if (isFirst && !out.isJson) out.line(describeJob(details))
  const lines = [...buildLogLines(details), ...events.map(buildEventLine), ...buildEnd(details)]
  for (const line of lines.sort((a, b) => a.at.localeCompare(b.at))) {
    if (seen.has(line.id)) continue
    seen.add(line.id)
    if (out.isJson) out.json(line.json)
    else out.line(`${line.at}  ${out.paint(line.colour, line.kind.padEnd(9))}  ${line.text}`.trimEnd())
  }
  seen.add('')
  return details
}

function describeJob({ job, tries, max_tries }: JobDetails): string {
  const ran =
    job.started_at === null || job.finished_at === null
      ? ''
      : ` in ${formatDuration(Date.parse(job.finished_at) - Date.parse(job.started_at))}`
  return clean(`${job.name}: ${job.status}${ran}, try ${tries} of ${max_tries}, added ${job.created_at}`)
}

const buildLogLines = ({ log }: JobDetails): Line[] =>
  (log ?? []).map((line, index) => ({
    id: `log ${index}`,
    at: line.at,
    kind: line.level,
    colour: LEVEL_COLOURS[line.level] ?? 'gray',
    text: clean([line.message, ...formatFields(line.data)].join('  ')),
    json: { kind: 'log', ...line },
  }))

const formatFields = (data: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(data).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )

function buildEventLine(event: JobEvent): Line {
  const { seq, kind, at, data } = event
  const fields = { id: `event ${seq}`, at, json: event }
  if (kind !== 'status') return { ...fields, kind, colour: null, text: clean(JSON.stringify(data)) }
  const { status, label, ...progress } = data as {
    status: string
    label: string
    current: number | null
    total: number | null
  }
  return { ...fields, kind: status, colour: colourOf(status), text: formatProgress(label, progress) }
}

/** Returns the line of the error with which a job ended. */
function buildEnd({ job }: JobDetails): Line[] {
  if (job.error === null || job.finished_at === null) return []
  const json = { kind: 'error', at: job.finished_at, data: job.error }
  return [{ id: 'error', at: job.finished_at, kind: 'error', colour: 'red', text: formatDetail(job), json }]
}
