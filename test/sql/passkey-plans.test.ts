import { after, describe, test } from 'node:test'
import { deleteTotp, findTotp, insertTotp, readTotp } from '../../sql/accounts/totp.ts'
import { credentialsByEmail, credentialsById, recordLogin } from '../../sql/accounts.ts'
import type { Query } from '../../sql/db.ts'
import { connect } from '../../sql/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { decideLogin } from '../../sql/limits.ts'
import {
  consumeChallenge,
  deleteExpiredChallenges,
  deletePasskey,
  findPasskey,
  readPasskeys,
  recordPasskeyUse,
  registeredCredentials,
  renamePasskey,
} from '../../sql/passkeys.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { testDatabase } from '../database.ts'
import { assertWriteByIndex, fillOrganizations, planRead, testReads } from './plans-help.ts'

/** Sign-ins use an index, with 2000 accounts and 5000 passkeys. */

const { url, query } = await testDatabase()
await fillOrganizations(query)
const ID = `('01980000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
await query(
  `insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
   select ${ID}, 1 + n % 2000, sha256(n::text::bytea), '\\x01', 0, '{}', 'n', true from generate_series(1, 5000) n`,
)
await query(
  `insert into passkey_challenge (challenge, account_id, expires_at)
   select sha256(n::text::bytea), case when n % 2 = 0 then n end, now() + (n - 50) * interval '1 s' from generate_series(1, 5000) n`,
)
await query(
  `insert into account_totp (id, account_id, confirmed_at) select ${ID}, n, now() from generate_series(1, 2000) n`,
)
await query('analyze')
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

describe('reads by index', () => {
  const reads = [
    planRead('the passkeys of an account', readPasskeys, 5, null, 0, 100),
    planRead('the one-time codes of an account', readTotp, 5),
  ] as const
  testReads(client, reads)
})

let count = 100
const idOf = (n: number): string => `01980000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const next = (): number => ++count
const digest = (n: number): Buffer => digestOf(String(n))

const writes: Readonly<Record<string, () => Query<unknown>>> = {
  'whose a passkey is': () => findPasskey(digest(next())),
  'what an account has': () => registeredCredentials(next()),
  'a use': () => recordPasskeyUse(idOf(next()), 1, true),
  'another name': () => renamePasskey(1 + next(), idOf(count), 'x'),
  'an end': () => deletePasskey(1 + next(), idOf(count)),
  'a challenge': () => consumeChallenge(digest(next()), null),
  'challenges that nobody signed': () => deleteExpiredChallenges(2),
  'one-time codes': () => findTotp(next()),
  'begun anew': () => insertTotp(uuidv7(), next()),
  'switched off': () => deleteTotp(next()),
  'used up': () =>
    decideLogin(digest(next()), true, 5, 900, { totpId: idOf(count), step: 7, recovery: null }),
  'a login': () => recordLogin(next(), { passwordHash: 'x', totpId: idOf(count) }),
  'what a login is checked against': () => credentialsByEmail(`a${next()}@example.com`),
  'what its owner is checked against': () => credentialsById(next()),
}

// Only accounts and passkeys have many rows here.
describe('writes by index', () => {
  for (const [what, make] of Object.entries(writes))
    test(what, () => assertWriteByIndex(client, make, 'account', 'passkey'))
})
