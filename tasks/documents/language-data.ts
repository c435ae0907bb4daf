/** Where the data of a language is by which pictures are read. Without schemas, which children would load for nothing. */

/** The codes of `languages`. */
export const codesOf = (languages: string): string[] => languages.split('+')

/** The package of a language's data. */
export const packageOf = (code: string): string => `@tesseract.js-data/${code}`

/** A file of the package with a language's data, beside which the others are; null: it is not installed. */
export function dataOf(code: string): URL | null {
  try {
    return new URL(import.meta.resolve(packageOf(code)))
  } catch {
    return null
  }
}
