declare module 'word-extractor' {
  interface ReadOptions {
    /** False keeps typographic quotes and dashes. */
    readonly filterUnicode: boolean
    readonly includeFooters?: boolean
  }

  interface WordDocument {
    getBody(options: ReadOptions): string
    getHeaders(options: ReadOptions): string
    getFooters(options: ReadOptions): string
    getFootnotes(options: ReadOptions): string
    getEndnotes(options: ReadOptions): string
    getAnnotations(options: ReadOptions): string
    getTextboxes(options: ReadOptions): string
  }

  export default class WordExtractor {
    extract(bytes: Buffer): Promise<WordDocument>
  }
}
