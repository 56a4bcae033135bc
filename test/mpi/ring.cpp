// SPDX-License-Identifier: BSD-2-Clause
// ring.cpp - a C++ program, as mpicxx builds it. A vector goes round all ranks
// once by the C interface, each rank adding its number, and once by MPICH's C++
// bindings. Every rank checks both results.
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <mpi.h>

static const int COUNT = 100000;

template <typename Send, typename Recv>
static bool round_trip(int rank, int size, Send send, Recv recv)
{
	std::vector<double> data(COUNT);

	std::iota(data.begin(), data.end(), 0.0);
	if (rank > 0)
		recv(data, rank - 1);
	for (double &d : data)
		d += rank;
	if (rank + 1 < size)
		send(data, rank + 1);
	for (int i = 0; i < COUNT; i++)
		if (data[i] != i + rank * (rank + 1) / 2)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	MPI::Init(argc, argv);

	int rank = MPI::COMM_WORLD.Get_rank();
	int size = MPI::COMM_WORLD.Get_size();
	bool good = round_trip(
		rank, size,
		[](std::vector<double> &d, int to) {
			MPI_Send(d.data(), COUNT, MPI_DOUBLE, to, 1,
				 MPI_COMM_WORLD);
		},
		[](std::vector<double> &d, int from) {
			MPI_Recv(d.data(), COUNT, MPI_DOUBLE, from, 1,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		});
	good = round_trip(
		rank, size,
		[](std::vector<double> &d, int to) {
			MPI::COMM_WORLD.Send(d.data(), COUNT, MPI::DOUBLE, to,
					     2);
		},
		[](std::vector<double> &d, int from) {
			MPI::COMM_WORLD.Recv(d.data(), COUNT, MPI::DOUBLE,
					     from, 2);
		}) && good;

	int mine = good, all = 0;
	MPI::COMM_WORLD.Allreduce(&mine, &all, 1, MPI::INT, MPI::MIN);
	if (rank == 0)
		std::printf("%s\n", std::string(all ? "ring: right" :
						"ring: wrong").c_str());
	MPI::Finalize();
	return all ? 0 : 1;
}
