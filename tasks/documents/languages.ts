import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { codesOf, dataOf, packageOf } from './language-data.ts'

/** The languages in which words are read from pictures, e.g. `deu+fra`: codes of tesseract, the most likely one first. */
export const Languages = z
  .string()
  .max(64)
  .regex(
    /^[a-z]{3}(_[a-z]{2,5}){0,2}(\+[a-z]{3}(_[a-z]{2,5}){0,2}){0,4}$/,
    'must be codes such as eng or deu+fra',
  )

/** The packages that reading in these languages needs and that are not installed. */
const missingData = (languages: string): string[] =>
  codesOf(languages)
    .filter((code) => dataOf(code) === null)
    .map(packageOf)

/** Languages whose data is installed. */
export const Installed = z.string().superRefine((languages, context) => {
  const packages = missingData(languages)
  if (packages.length > 0)
    context.addIssue({ code: 'custom', message: `needs what is not installed: ${packages.join(', ')}` })
})

/** @throws fail('document.language_missing') for languages whose data is not installed. */
export function assertInstalled(languages: string): void {
  const packages = missingData(languages)
  if (packages.length > 0) throw fail('document.language_missing', { packages: packages.join(', ') })
}
