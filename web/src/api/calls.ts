/** The types of calls, by method and path, from the OpenAPI document. */
import type { paths as RequestPaths } from "./requests";
import type { paths } from "./schema";

type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have the method. */
export type PathWith<M extends Method> = {
  [P in keyof paths]: [paths[P][M]] extends [undefined] ? never : P;
}[keyof paths];

/** The parameters of the path and of the query, in one. */
export type Params<M extends Method, P extends PathWith<M>> = Optional<
  Given<RequestPaths[P][M], "path"> & Given<RequestPaths[P][M], "query">
>;

export type Body<M extends Method, P extends PathWith<M>> = RequestPaths[P][M] extends {
  requestBody?: { content: { "application/json": infer T } };
}
  ? T
  : never;

export type Result<M extends Method, P extends PathWith<M>> = paths[P][M] extends { responses: infer R }
  ? Json<R[keyof R & (200 | 201 | 202)]>
  : never;

type Given<Operation, Place extends string> = Operation extends { parameters: { [K in Place]?: infer T } }
  ? [T] extends [undefined]
    ? unknown
    : T
  : unknown;

type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;

/** Members that are undefined are left out, as if they were absent. */
type Optional<T> = { [K in keyof T]: undefined extends T[K] ? T[K] | undefined : T[K] };
