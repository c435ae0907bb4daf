import { withPool } from '../../../tasks/platform/command.ts'
import { parseSettings } from '../../../tasks/platform/settings/settings.ts'
import { shareStoredKey } from '../../keys.ts'
import { hashPassword, queryRows, type Stack, signIn } from '../stack.ts'
import { listCalls } from './calls.ts'
import { EDGE_SETTINGS } from './edge.ts'
import { CallMeter, type Cost, type Effort, type StatementCounter } from './measure.ts'
import { seedDatabase } from './seed.ts'
import { Statements } from './statements.ts'
import { findTargets } from './targets.ts'

/** Maps the name of each call to its cost at one size of the database. */
export type Costs = ReadonlyMap<string, Cost>

/**
 * Seeds a database, measures every call to an edge on it, and drops the database.
 *
 * @param said receives progress messages
 * @param among selects calls whose names contain this text
 */
export async function measureShare(
  stack: Stack,
  share: number,
  effort: Effort,
  said: (line: string) => void = () => {},
  among = '',
): Promise<Costs> {
  const url = await stack.createDatabase()
  const report = (line: string): void => said(`${share} %: ${line}`)
  await seedShare(url, share, report)
  const settings = parseSettings({ DATABASE_URL: url })
  await withPool(settings, url, 'keys', shareStoredKey)
  const edge = await stack.edge(url, EDGE_SETTINGS)
  const statements = await Statements.of(url)
  const costs = await measureCalls({ url, port: edge.port }, statements, effort, report, among)
  await Promise.all([statements.close(), edge.stop()])
  await queryRows(url.replace(/[^/]+$/, 'postgres'), `drop database ${url.split('/').at(-1)} with (force)`)
  return costs
}

/** Creates the three accounts in a migrated database and seeds it. */
export async function seedShare(
  url: string,
  share: number,
  said: (line: string) => void = () => {},
): Promise<void> {
  await insertAccounts(url)
  await seedDatabase(url, share, (file, ms) => said(`${file} took ${Math.round(ms)} ms`))
}

/** Measures every call to an edge on a seeded database. @throws if the edge rejects a call. */
export async function measureCalls(
  { url, port }: { readonly url: string; readonly port: number },
  statements: StatementCounter,
  effort: Effort,
  said: (line: string) => void = () => {},
  among = '',
): Promise<Costs> {
  const token = (name: string): Promise<string> => signIn(port, `${name}@example.com`)
  const tokens = { admin: await token('admin'), big: await token('big'), small: await token('small') }
  const meter = new CallMeter(port, tokens, statements)
  const costs = new Map<string, Cost>()
  for (const call of listCalls(await findTargets(url)).filter(({ name }) => name.includes(among))) {
    const cost = await meter.measureCost(call, effort)
    costs.set(call.name, cost)
    said(`${call.name}: ${cost.buffers} buffers, ${cost.ms[0]!.toFixed(1)} ms`)
  }
  meter.close()
  return costs
}

/** Inserts the three accounts that send the requests, in the state after their registration. */
async function insertAccounts(url: string): Promise<void> {
  await queryRows(
    url,
    `insert into account (email, password_hash, role) values
     ('admin@example.com', $1, 'admin'), ('big@example.com', $1, 'user'), ('small@example.com', $1, 'user')`,
    [await hashPassword()],
  )
}
