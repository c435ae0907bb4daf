import { writeYaml } from './yaml.ts'

/** A post as it is exported, but for its text. */
export interface PostMatter {
  readonly title: string
  readonly slug: string
  readonly [key: string]: unknown
}

/** A post as a file of Markdown with front matter, which the import reads back as it was. */
export function toMarkdown({ content, ...matter }: PostMatter & { readonly content: string }): string {
  return `---\n${writeYaml(matter)}---\n${content}`
}
