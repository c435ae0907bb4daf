import { type AddressSide, findPendingEmailChange } from '../../sql/accounts/email-changes.ts'
import type { TaskContext } from '../context.ts'
import { composeAddressInUseEmail, composeNewAddressEmail, composeOldAddressEmail } from './emails.ts'
import { mailOnce, mailUnsolicited } from './mail.ts'
import { emailChangeTokensOf, findToken } from './tokens.ts'

/** Runs `accounts.email-change`. */
export async function run(
  ctx: TaskContext,
  {
    change_id: id,
    side,
    redirect_to: redirectTo,
  }: { readonly change_id: string; readonly side: AddressSide; readonly redirect_to?: string | undefined },
): Promise<Record<string, never>> {
  const { db, settings, keys } = ctx
  const found = await db.maybeOne(findPendingEmailChange(id, side))
  if (found === null || found.is_confirmed) return {}
  const token = findToken(emailChangeTokensOf(keys, side, id), found.digest)
  if (token === null) throw new Error('The email change was requested under an unknown SECRET_KEY')
  const target = { base: settings.publicBaseUrl, redirectTo }
  const hours = settings.verifyTokenSeconds / 3600
  const { old_email: old, new_email: address, full_name: name } = found
  if (side === 'old')
    await mailOnce(
      ctx,
      old,
      composeOldAddressEmail({ name, address }, target, token, hours),
      settings.verifyTokenSeconds,
    )
  else if (found.is_taken) await mailUnsolicited(ctx, address, composeAddressInUseEmail(address))
  else
    await mailUnsolicited(
      ctx,
      address,
      composeNewAddressEmail(address, target, token, hours),
      settings.verifyTokenSeconds,
    )
  return {}
}
