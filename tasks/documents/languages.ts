import { z } from 'zod'
import { fail } from '../../sql/errors.ts'
import { dataPackageNameOf, findDataUrl, splitLanguages } from './language-data.ts'

/** OCR languages such as `deu+fra`: Tesseract codes, the most likely first. */
export const Languages = z
  .string()
  .max(64)
  .regex(
    /^[a-z]{3}(_[a-z]{2,5}){0,2}(\+[a-z]{3}(_[a-z]{2,5}){0,2}){0,4}$/,
    'must be codes such as eng or deu+fra',
  )

/** Returns the missing packages for OCR in these languages. */
const findMissingPackages = (languages: string): string[] =>
  splitLanguages(languages)
    .filter((code) => findDataUrl(code) === null)
    .map(dataPackageNameOf)

/** A schema for languages whose data is installed. */
export const InstalledLanguages = z.string().superRefine((languages, context) => {
  const packages = findMissingPackages(languages)
  if (packages.length > 0)
    context.addIssue({
      code: 'custom',
      message: `requires OCR data that is not installed: ${packages.join(', ')}`,
    })
})

/** Checks that the OCR data of languages is installed. @throws fail('document.language_missing') if it is not */
export function assertLanguagesInstalled(languages: string): void {
  const packages = findMissingPackages(languages)
  if (packages.length > 0) throw fail('document.language_missing', { packages: packages.join(', ') })
}
