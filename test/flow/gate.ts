import pg from 'pg'
import { stopAfterFile } from '../services.ts'

/** Where transactions wait in the database of a file, so that none is over before a test has done what it is about. */
export interface Gate {
  /** Lets all of them through. */
  open(): Promise<void>
  /** Transactions that come from now on wait; resolves once those that were inside have ended. */
  close(): Promise<void>
}

const GATE = 7001

/** A gate that is closed, which `trigger` leads to: when and of what it is, without its name and its function. */
export async function closedGate(url: string, trigger: string): Promise<Gate> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  stopAfterFile(() => holder.end())
  await holder.query(`create function gate() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(${GATE}); return new; end $$;
    create trigger gate ${trigger} execute function gate()`)
  const gate = {
    open: async () => void (await holder.query('select pg_advisory_unlock_all()')),
    close: async () => void (await holder.query(`select pg_advisory_lock(${GATE})`)),
  }
  await gate.close()
  return gate
}

/** One that no document gets past with this page. */
export const gateAtPage = (url: string, page: number): Promise<Gate> =>
  closedGate(url, `after insert on document_page for each row when (new.page_number = ${page})`)
