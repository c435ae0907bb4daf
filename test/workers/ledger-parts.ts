import { fail } from '../../sql/errors.ts'
import type { ProgressEntry } from '../../sql/jobs/jobs.ts'
import { createLedger } from '../../workers/attempts/ledger.ts'
import { createTestDatabase } from '../database.ts'
import { createLedgerHelp } from '../sql/ledger-help.ts'
import { createFaultyDatabase, type FaultyDatabase, log } from './parts.ts'

/** Creates a worker's ledger on the file's own database, with access to the tables behind it. */
export async function createWorkerLedger() {
  const database = await createTestDatabase()
  const help = createLedgerHelp(database)
  const lease = await help.lease()

  /**
   * Opens a new ledger. Also returns the statements it sent, the jobs it notified about, with the number of the last
   * event before, and the attempts it gave up.
   */
  const open = (leaseId: () => string = () => lease, claimNotify = () => false, takeTurn = () => false) => {
    const db: FaultyDatabase = createFaultyDatabase(database.db, () => fail('database.down'))
    const marked: string[] = []
    const afters: (number | null)[] = []
    const superseded: string[] = []
    const ledger = createLedger({
      db,
      publisher: {
        notify: (id, _urgency, after = null) => {
          marked.push(id)
          afters.push(after)
        },
        takeTurn,
        claimNotify,
        close: () => Promise.resolve(),
      },
      log,
      leaseId,
      logFields: (id) => ({ jobId: id }),
      onSuperseded: (id, attempt) => void superseded.push(`${id}/${attempt}`),
    })
    const named = (name: string) => db.calls.filter((call) => call.name === name)
    return { ledger, db, marked, afters, superseded, named }
  }
  const running = (count: number) => Promise.all(Array.from({ length: count }, () => help.running({}, lease)))
  const notes = async (id: string) =>
    (await help.events(id)).filter((event) => event.kind === 'note').map((event) => event.data.n)
  return { base: database, help, lease, open, running, notes }
}

/** Returns progress entry number `n` of a job. */
export const createProgress = (id: string, n: number, attempt = 1): ProgressEntry => ({
  id,
  attempt,
  n,
  kind: 'note',
  data: { n },
})
