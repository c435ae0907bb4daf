import pg from 'pg'
import { stopAfterFile } from '../services.ts'

/** Holds transactions in a file's database, so that none ends before the test is ready. */
export interface Gate {
  /** Lets all transactions through. */
  open(): Promise<void>
  /** Holds transactions from now on; resolves once those inside have ended. */
  close(): Promise<void>
}

const GATE = 7001

/** Makes a closed gate; `trigger` has the event and table of its trigger, without name and function. */
export async function createClosedGate(url: string, trigger: string): Promise<Gate> {
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

/** A closed gate that holds every document at this page. */
export const createGateAtPage = (url: string, page: number): Promise<Gate> =>
  createClosedGate(url, `after insert on document_page for each row when (new.page_number = ${page})`)
