// One search by the generated client: node made/search.js URL NUMBER... prints the hits of the text vector as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [url, ...numbers] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url });

const { data, error } = await client.POST("/collections/{collection}/search", {
  params: { path: { collection: "default" } },
  body: { query: { text: numbers.map(Number) }, database: "image", limit: 3 },
});
if (error) throw new Error(`${error.code}: ${error.detail}`);
const hits = data.results as components["schemas"]["Hit"][];
const best: { id: string; distance: number }[] = hits.map(({ id, distance }) => ({ id, distance }));

const refused = await client.POST("/search", { body: { query: { text: [1] } } });
const code: string | undefined = refused.error?.code;

// What is wrong does not compile.
// @ts-expect-error: there is no such route
void (() => client.GET("/serch"));
// @ts-expect-error: a limit is a number
void (() => client.POST("/search", { body: { query: { text: [1] }, limit: "three" } }));

console.log(JSON.stringify({ best, code }));
