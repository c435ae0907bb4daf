import { writeYaml } from './yaml.ts'

/** A post as it is exported, without its text. */
export interface PostMatter {
  readonly title: string
  readonly slug: string
  readonly [key: string]: unknown
}

/** A post as a Markdown file with front matter, which an import reads back unchanged. */
export function toMarkdown({ content, ...matter }: PostMatter & { readonly content: string }): string {
  return `---\n${writeYaml(matter)}---\n${content}`
}
