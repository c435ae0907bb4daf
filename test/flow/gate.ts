import pg from 'pg'
import { stopAfterFile } from '../services.ts'

/** A gate that blocks transactions in the test database until it is opened. */
export interface Gate {
  /** Lets all transactions pass. */
  open(): Promise<void>
  /** Blocks transactions again; resolves once those that passed have ended. */
  close(): Promise<void>
}

const GATE_LOCK_ID = 7001

/** Creates a closed gate. `trigger` is the event and table clause of its trigger. */
export async function createClosedGate(url: string, trigger: string): Promise<Gate> {
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  stopAfterFile(() => holder.end())
  await holder.query(`create function gate() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(${GATE_LOCK_ID}); return new; end $$;
    create trigger gate ${trigger} execute function gate()`)
  const gate = {
    open: async () => void (await holder.query('select pg_advisory_unlock_all()')),
    close: async () => void (await holder.query(`select pg_advisory_lock(${GATE_LOCK_ID})`)),
  }
  await gate.close()
  return gate
}

/** Creates a closed gate at which every document blocks on this page. */
export const createGateAtPage = (url: string, page: number): Promise<Gate> =>
  createClosedGate(url, `after insert on document_page for each row when (new.page_number = ${page})`)
