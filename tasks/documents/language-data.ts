/** Finds OCR data of languages. Has no schemas, which child processes would load in vain. */

/** Splits languages such as `deu+fra` into codes. */
export const splitLanguages = (languages: string): string[] => languages.split('+')

/** Returns the name of the package with a language's data. */
export const dataPackageName = (code: string): string => `@tesseract.js-data/${code}`

/** Returns the URL of a file in the data package of a language, next to its data; null if it is not installed. */
export function findDataUrl(code: string): URL | null {
  try {
    return new URL(import.meta.resolve(dataPackageName(code)))
  } catch {
    return null
  }
}
