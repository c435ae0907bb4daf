/** Finds the OCR data of languages. Separate from `languages.ts`, because child processes do not need its schemas. */

/** Splits languages such as `deu+fra` into codes. */
export const splitLanguages = (languages: string): string[] => languages.split('+')

/** Returns the name of the package with a language's data. */
export const dataPackageNameOf = (code: string): string => `@tesseract.js-data/${code}`

/** Returns the URL of a file in the data package of a language; null if the package is not installed. */
export function findDataUrl(code: string): URL | null {
  try {
    return new URL(import.meta.resolve(dataPackageNameOf(code)))
  } catch {
    return null
  }
}
