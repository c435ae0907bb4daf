import type { z } from 'zod'
import type { Frame, JobState } from '../client/connection.ts'
import type { Job as JobSchema } from '../routes/jobs/shapes.ts'
import type { Input } from './command.ts'
import { STATUS } from './io.ts'
import { type Colour, clean, type Output } from './output.ts'

/** Jobs as several commands show and await them. */

export type Job = z.output<typeof JobSchema>

const COLOURS: Readonly<Partial<Record<string, Colour>>> = {
  running: 'cyan',
  done: 'green',
  failed: 'red',
  cancelled: 'yellow',
}

/** Returns the colour of a status; null for that of the terminal. */
export const colourOf = (status: string): Colour | null => COLOURS[status] ?? null

interface Progress {
  readonly current: number | null
  readonly total: number | null
}

/** Returns progress and label, such as `3/10 Page 3`. */
export function formatProgress(label: string, progress?: Progress | null): string {
  const { current = null, total = null } = progress ?? {}
  const count = current === null ? '' : total === null ? `${current} ` : `${current}/${total} `
  return clean(`${count}${label}`).trim()
}

/** Parts of a job, or of a frame of a stream. */
export interface JobProgress {
  readonly label: string
  readonly progress?: Progress | null
  readonly error?: Job['error']
}

/** Returns the error of a job, or its progress. */
export const formatDetail = ({ label, progress, error }: JobProgress): string =>
  error ? clean(`${error.detail} (${error.code})`) : formatProgress(label, progress)

/** Runs an action. If it fails or is interrupted, writes a line about the jobs that go on, with their id. */
export async function withFarewell<T>(
  { out }: Pick<Input, 'out'>,
  line: string,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    out.note(line)
    throw error
  }
}

/**
 * Shows the progress of a job until it ends, then its result, and returns the exit status.
 * @param name shown before the status.
 */
export function awaitJob({ api, out, io }: Input, id: string, name: string): Promise<number> {
  return withFarewell({ out }, `The job goes on: npx millrace logs ${id} --follow`, async () => {
    let last: Frame<JobState> | null = null
    for await (const frame of api.jobs.events(id, { signal: io.signal })) {
      if (frame.event !== 'status') continue
      last = frame
      const { status, label, progress } = frame.data
      out.state([name, status, formatProgress(label, progress)].join('  ').trimEnd())
    }
    if (last === null) throw new Error(`The stream of job ${id} ended before the job`)
    return showEnd(out, last.data, id)
  })
}

function showEnd(out: Output, state: JobState, id: string): number {
  if (out.isJson) out.json(state)
  if (state.status === 'done') {
    if (!out.isJson) out.line(JSON.stringify(state.result ?? null, null, 2))
    return STATUS.done
  }
  out.note(state.error === undefined ? `The job was ${state.status}` : formatDetail(state))
  out.note(`See: npx millrace logs ${id}`)
  if (state.status === 'failed') out.note(`Try again: npx millrace retry ${id} --wait`)
  return STATUS.failed
}
