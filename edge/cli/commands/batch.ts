import type { JobState } from '../../client/connection.ts'
import { defineCommand, type Input } from '../command.ts'
import { STATUS, UsageError } from '../io.ts'
import { colourOf, formatDetail, formatProgress, withFarewell } from '../jobs.ts'
import { readJson, readJsonFile } from '../json.ts'

interface AddedBatch {
  readonly batch_id: string
  readonly job_ids: readonly string[]
}

interface Totals {
  readonly total: number
  readonly done: number
}

export const batch = defineCommand({
  args: 'FILE',
  about: 'Adds the batch of jobs in a JSON file, or in the standard input with -, and writes its id.',
  notes: 'The file has the body of POST /api/v1/batches, or only its array of jobs.',
  options: {
    wait: { about: 'show the progress, then the numbers of jobs; exit status 1 unless all are done' },
  },
  example: 'batch nightly.json --wait',
  scopes: ['batches:write'],
  run: async (input) => {
    const { api, out, values } = input
    const file = input.args[0]!
    const body =
      file === '-' ? await readJson('The batch', '-', input.io) : await readJsonFile('The batch', file)
    if (typeof body !== 'object' || body === null)
      throw new UsageError(`${file} must have a JSON object or array`)
    if (values.wait && 'open' in body && body.open === true)
      throw new UsageError('--wait: an open batch ends only once it is closed')
    const added = await api.call<AddedBatch>('POST', '/api/v1/batches', {
      body: Array.isArray(body) ? { jobs: body } : body,
    })
    if (values.wait)
      return withFarewell(input, `The batch ${added.batch_id} goes on`, () => awaitBatch(input, added))
    if (out.isJson) out.json(added)
    else {
      out.line(added.batch_id)
      out.note(`The batch has ${added.job_ids.length} jobs`)
    }
    return STATUS.done
  },
})

/** Shows the progress of a batch and the jobs that do not succeed, then its totals. */
async function awaitBatch({ api, io, out }: Input, { batch_id: id }: AddedBatch): Promise<number> {
  for await (const { event, data } of api.events<JobState>(`/api/v1/batches/${id}/events`, {
    signal: io.signal,
  })) {
    if (event === 'progress') out.state(`batch  ${data.status}  ${formatProgress(data.label, data.progress)}`)
    else if (data.job_id !== id) {
      if (out.isJson) out.json(data)
      else if (data.status !== 'done')
        out.note(`${data.job_id}  ${out.paint(colourOf(data.status), data.status)}  ${formatDetail(data)}`)
    } else {
      if (out.isJson) out.json(data)
      else out.line(JSON.stringify(data.result ?? data.error ?? null))
      const totals = data.result as Totals | undefined
      return data.status === 'done' && totals?.done === totals?.total ? STATUS.done : STATUS.failed
    }
  }
  return STATUS.failed
}
