import { withPool } from '../../tasks/platform/command.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { hasSecretKey, loadSecretKeys } from '../../tasks/platform/process.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { countSealedTexts } from '../../tasks/system/reseal.ts'
import { type Finding, note, ok, problem } from './findings.ts'

/** Checks that the keys open all sealed texts, and whether previous keys are still needed. */
export function checkKeys(settings: Settings, databaseUrl: string): Promise<Finding[]> {
  return withPool(settings, databaseUrl, 'doctor', async (db) => {
    // Without a key, the doctor must not generate one.
    const secrets = hasSecretKey(settings) ? loadSecretKeys(settings) : ['']
    const keys = new SecretKeys({ secrets, stored: [] })
    const { current, previous, unknown } = await countSealedTexts(db, keys)
    const findings = [ok('keys', `sealed texts under SECRET_KEY: ${current}`)]
    if (previous > 0)
      findings.push(
        note('keys', `sealed texts under SECRET_KEYS_PREVIOUS: ${previous}; npm run admin -- reseal`),
      )
    else if (keys.previousIds.length > 0)
      findings.push(note('keys', 'no sealed text needs SECRET_KEYS_PREVIOUS; remove it after a day'))
    if (unknown > 0)
      findings.push(
        problem('keys', `sealed texts that no key opens: ${unknown}; see "Lost key" in deploy/operating.md`),
      )
    return findings
  })
}
