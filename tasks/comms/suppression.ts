import type { SendStream } from '../../sql/comms/sends.ts'
import { filterSuppressed } from '../../sql/comms/suppressions.ts'
import type { Queries } from '../../sql/db.ts'
import { fail } from '../../sql/errors.ts'

/** Checks that a number may get text messages. @throws fail('telephony.suppressed') if its owner has opted out */
export async function rejectOptedOutNumber(db: Queries, number: string): Promise<void> {
  const suppressed = await db.any(filterSuppressed([number], 'transactional'))
  if (suppressed.length > 0) throw fail('telephony.suppressed', { number })
}

/**
 * Checks that no address is suppressed in a stream; `account` stands for mails of an account itself.
 * @throws fail('email.suppressed') if one is
 */
export async function rejectSuppressedAddresses(
  db: Queries,
  addresses: readonly string[],
  stream: SendStream | 'account',
): Promise<void> {
  const suppressed = await db.any(filterSuppressed(addresses, stream))
  if (suppressed.length > 0)
    throw fail('email.suppressed', { addresses: suppressed.map(({ address }) => address).join(', ') })
}
